"""All-gather of the rows of A, then the product with the rank's own B: c = A @ b.T in float32."""
import torch
import torch.distributed as dist


def operation(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    world = dist.get_world_size()
    gathered = torch.empty(world * a.shape[0], a.shape[1], dtype=a.dtype, device=a.device)
    dist.all_gather_into_tensor(gathered, a)
    torch.matmul(gathered.float(), b.float().t(), out=c)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world = dist.get_world_size()
    for tiles, depth in ((1, 1), (4, 4)):
        a = torch.randint(-8, 9, (tiles * 64, depth * 64), device="cuda").half()
        b = torch.randint(-8, 9, (32, depth * 64), device="cuda").half()
        operation(a, b, torch.empty(world * tiles * 64, 32, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
