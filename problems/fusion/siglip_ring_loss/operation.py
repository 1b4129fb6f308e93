"""Sigmoid contrastive loss of own images with the texts of all ranks, and the images' gradient."""
import torch
import torch.distributed as dist


def operation(
    image: torch.Tensor, text: torch.Tensor, loss: torch.Tensor, grad: torch.Tensor
) -> None:
    """image, text, grad: [n, 64], loss: [n]."""
    world, rank, n = dist.get_world_size(), dist.get_rank(), len(image)
    texts = torch.empty(world * n, 64, dtype=text.dtype, device=text.device)
    dist.all_gather_into_tensor(texts, text)
    texts = texts.float()
    score = image.float() @ texts.T / 32768 - 2
    sign = torch.full_like(score, -1)
    sign[:, rank * n : (rank + 1) * n].fill_diagonal_(1)
    loss.copy_(torch.nn.functional.softplus(-sign * score).sum(dim=1))
    grad.copy_((-sign * torch.sigmoid(-sign * score)) @ texts / 32768)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (8, 20):
        image, text = torch.randint(-127, 128, (2, n, 64), device="cuda").to(torch.int8)
        operation(image, text, torch.empty(n, device="cuda"), torch.empty(n, 64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
