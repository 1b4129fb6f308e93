"""Step of fully sharded training: gather each layer's weights, scatter the sums of its gradients."""
import torch
import torch.distributed as dist


def operation(shard: torch.Tensor, x: torch.Tensor, scale: torch.Tensor, grad: torch.Tensor) -> None:
    """shard, grad: [layers, m]; x, scale: [world * m]; floats."""
    layers = shard.shape[0]
    w, h = torch.empty(layers, x.numel(), device=x.device), [x]
    gathers = [dist.all_gather_into_tensor(w[l], shard[l], async_op=True) for l in range(layers)]
    for layer in range(layers):
        gathers[layer].wait()
        h.append(torch.clamp(w[layer] * h[layer] + x, -8, 8))
    d, scatters = h[layers], []
    for layer in reversed(range(layers)):
        gradients = d * h[layer] * scale
        scatters.append((dist.reduce_scatter_tensor(grad[layer], gradients, async_op=True), gradients))
        d = torch.clamp(w[layer] * d + h[layer], -8, 8)
    for work, _ in scatters:
        work.wait()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    layers = 6
    for m in (256, 4096):
        shard = torch.randint(-2, 3, (layers, m), device="cuda").float()
        x = torch.randint(-4, 5, (dist.get_world_size() * m,), device="cuda").float()
        operation(shard, x, torch.randn_like(x), torch.empty_like(shard))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
